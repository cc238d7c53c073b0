-- KEYS: lock, record, fence key if wanted. ARGV: an empty one, caller, the command. For the commonest acquires (no fencing,
-- no default_ttl or max_ttl that could matter) four others: the new record's makings (36 bytes of token, fifteen digits of
-- the window, then ' connection 1 ttl window'), the value, the TTL in ms ('': SETNX), the owner.
-- A refused acquire ends here.
local try, args, taken = redis.pcall, ARGV
local makings, ttl = args[1], args[3]
if makings == '' then taken = try(unpack(args, 3))
elseif ttl == '' then taken = try('SETNX', KEYS[1], args[2])
else taken = try('SET', KEYS[1], args[2], 'NX', 'PX', ttl) end
if not taken or taken == 0 then return taken end
-- Where there is no record either, one is written, and the grant ends here too. If anything is in the way, the long way
-- round finds the lock just taken and the record as it was.
if makings ~= '' and (taken == 1 or taken.ok) then
  local r, sub, at, expiry = KEYS[2], string.sub
  if ttl == '' then
    local t = try('TIME')
    at = t[1] and t[1] * 1000 + t[2] / 1000
  else
    expiry = try('PEXPIRETIME', KEYS[1])
    at = type(expiry) == 'number' and expiry > 0 and expiry + sub(makings, 37, 51)
  end
  if at and try('EXISTS', r) == 0 then
    at = string.format('%d', at)
    if try('HSET', r, 'lease', '2 ' .. at .. sub(makings, 52), 'owner', args[4], 'token', sub(makings, 1, 36),
      'connection_open', '1', 'owing', '1') == 5
      and (not expiry or try('PEXPIREAT', r, at) == 1) then return taken end
    try('DEL', r)
  end
end
