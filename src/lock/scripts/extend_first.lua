-- KEYS: lock, record. ARGV: caller; in, at, keep or (in, without conditions or max_ttl) for; milliseconds from now, or
-- since 1970; NX, XX, GT, LT as letters or '-', with for how a first lease of the caller's connection stands in a record
-- (' connection 1 '); how a refusal is answered; the command.
-- The commonest extend: by the connection that took the lock, with no other lease on its record before it. If anything
-- is in the way, the long way round begins anew.
local try, mine, lease = redis.pcall, ARGV[4]
if ARGV[2] == 'for' then lease = try('HGET', KEYS[2], 'lease') end
if type(lease) == 'string' and string.sub(lease, 16, 15 + #mine) == mine and string.byte(lease) == 50 then
  local k, r, window = KEYS[1], KEYS[2], string.match(lease, '^%d+ (%d+)', 16 + #mine)
  local expiry, due = try('PEXPIRETIME', k), try('PEXPIRETIME', r)
  if type(expiry) == 'number' and type(due) == 'number'
    and (expiry > 0 and math.abs(expiry + window - due) <= 2 or expiry == -1 and due == -1)
    and redis.acl_check_cmd('PEXPIREAT', r) then
    local taken = try(unpack(ARGV, 6))
    if taken == 1 then
      try('PEXPIREAT', r, string.format('%d', try('PEXPIRETIME', k) + window))
      return taken
    end
  end
end
