-- KEYS: lock, record, fence key if wanted. ARGV: caller, the command. For the commonest acquires (no fencing, no
-- default_ttl or max_ttl that could matter) three instead: the new record's makings (three digits where the owner
-- begins, fifteen of the window, ' connection 1 ttl window token owner'), the value, the TTL in ms ('': SETNX).
-- A refused acquire ends here.
local try, ttl, taken = redis.pcall, not ARGV[4] and ARGV[3]
if not ttl then taken = try(unpack(ARGV, 2))
elseif ttl == '' then taken = try('SETNX', KEYS[1], ARGV[2])
else taken = try('SET', KEYS[1], ARGV[2], 'NX', 'PX', ttl) end
if not taken or taken == 0 then return taken end
-- Where there is no record either, one is written, and the grant ends here too. If anything is in the way, the long way
-- round finds the lock just taken and the record as it was.
if ttl and (taken == 1 or taken.ok) then
  local r, makings, sub, format, now, expiry = KEYS[2], ARGV[1], string.sub, string.format
  if ttl == '' then
    local t = try('TIME')
    now = t[1] and t[1] * 1000 + t[2] / 1000
  else
    expiry = try('PEXPIRETIME', KEYS[1])
    now = type(expiry) == 'number' and expiry > 0 and expiry - ttl
  end
  if now and try('EXISTS', r) == 0 then
    local owner = sub(makings, 1, 3)
    local lease = format('2 %d%s', now, sub(makings, 19, owner - 2))
    if try('HSET', r, 'lease', lease, 'owner', sub(makings, owner), 'connection_open', '1', 'owing', '1') == 4
      and (not expiry or try('PEXPIREAT', r, format('%d', expiry + sub(makings, 4, 18))) == 1) then return taken end
    try('DEL', r)
  end
end
