-- DEL, UNLINK. KEYS: each lock and its record, then the other keys. ARGV: the command; how a first lease of the caller's
-- connection stands in a record (' connection 1 '); for each lock whether its rule allows (1 or 0), and the owner.
-- The commonest releases: of one lock, by the connection that took it or another of its owner, with no other lease on its
-- record before it. So nothing is owed, and lock and record go in one command. If anything is in the way, the long way
-- round begins anew.
local try, mine, o, l = redis.pcall, ARGV[2], 'released'
if not KEYS[3] then l = try('HGET', KEYS[2], 'lease') end
if type(l) == 'string' and string.byte(l) == 50 then
  local k, r, at, b = KEYS[1], KEYS[2], string.sub(l, 3, 15), 16 + #mine
  if string.find(l, mine, 16, true) ~= 16 then
    o, b = 'pooled', string.match(l, '^ %S+ 1 ()', 16)
    if b and try('HGET', r, 'owner') ~= string.sub(ARGV[3], 2) then b = nil end
  end
  local ttl, w = string.match(l, '^(%d+) (%d+)', b)
  local e, now, t = b and try('PEXPIRETIME', k)
  if tonumber(e) and e > 0 then
    -- Where an extend changed the expiry, the record's own tells.
    t = e + w - at == 0 and at or try('PEXPIRETIME', r)
    if tonumber(t) and math.abs(e + w - t) <= 2 then
      t = try('PTTL', k)
      now = tonumber(t) and e - t
    end
  elseif e == -1 and try('PEXPIRETIME', r) == -1 then
    t = try('TIME')
    now = t[1] and t[1] * 1000 + t[2] / 1000
  end
  if now and try(ARGV[1], k, r) == 2 then
    return {ok = string.format('%s held=%d', o, now - (ttl == '0' and at or at - w - ttl))}
  end
end
