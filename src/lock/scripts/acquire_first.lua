-- KEYS: lock, record, fence key if wanted. ARGV: caller, the command. For the commonest acquires (no fencing, no
-- default_ttl or max_ttl that could matter) three instead: the new record's makings (36 bytes of token, three digits
-- where the owner begins, fifteen of the window, ' connection 1 ttl window owner'), the value, the TTL in ms ('': SETNX).
-- A refused acquire ends here.
local try, ttl, taken = redis.pcall, not ARGV[4] and ARGV[3]
if not ttl then taken = try(unpack(ARGV, 2))
elseif ttl == '' then taken = try('SETNX', KEYS[1], ARGV[2])
else taken = try('SET', KEYS[1], ARGV[2], 'NX', 'PX', ttl) end
if not taken or taken == 0 then return taken end
-- Where there is no record either, one is written, and the grant ends here too. If anything is in the way, the long way
-- round finds the lock just taken and the record as it was.
if ttl and (taken == 1 or taken.ok) then
  local r, makings, sub, at, expiry = KEYS[2], ARGV[1], string.sub
  if ttl == '' then
    local t = try('TIME')
    at = t[1] and t[1] * 1000 + t[2] / 1000
  else
    expiry = try('PEXPIRETIME', KEYS[1])
    at = type(expiry) == 'number' and expiry > 0 and expiry + sub(makings, 40, 54)
  end
  if at and try('EXISTS', r) == 0 then
    local owner = sub(makings, 37, 39)
    at = string.format('%d', at)
    if try('HSET', r, 'lease', '2 ' .. at .. sub(makings, 55, owner - 2), 'owner', sub(makings, owner),
      'token', sub(makings, 1, 36), 'connection_open', '1', 'owing', '1') == 5
      and (not expiry or try('PEXPIREAT', r, at) == 1) then return taken end
    try('DEL', r)
  end
end
