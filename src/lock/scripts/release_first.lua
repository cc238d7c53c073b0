-- DEL, UNLINK. KEYS: each lock and its record, then the other keys. ARGV: the command; how a first lease of the caller's
-- connection stands in a record (' connection 1 '); each caller.
-- The commonest release: of one lock, by the connection that took it, with no other lease on its record before it. So
-- nothing is owed, and lock and record go in one command. If anything is in the way, the long way round begins anew.
local try, mine, l = redis.pcall, ARGV[2]
if not KEYS[3] then l = try('HGET', KEYS[2], 'lease') end
if type(l) == 'string' and string.sub(l, 16, 15 + #mine) == mine and string.byte(l) == 50 then
  local k, r, from = KEYS[1], KEYS[2], string.sub(l, 3, 15)
  local ttl, window = string.match(l, '^(%d+) (%d+)', 16 + #mine)
  local e, due, t, now = try('PEXPIRETIME', k)
  -- Where an extend changed the expiry, the record's own tells.
  if e ~= from + ttl then due = try('PEXPIRETIME', r) end
  if e == -1 and due == -1 then
    t = try('TIME')
    now = t[1] and t[1] * 1000 + t[2] / 1000
  elseif not due or tonumber(due) and tonumber(e) and e > 0 and math.abs(e + window - due) <= 2 then
    t = try('PTTL', k)
    now = tonumber(t) and e - t
  end
  if now and try(ARGV[1], k, r) == 2 then
    return {string.format('released held=%d', math.max(now - from, 0)), 1}
  end
end
