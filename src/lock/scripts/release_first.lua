-- DEL, UNLINK. KEYS: each lock and its record, then the other keys. ARGV: the command; how a first lease of the caller's
-- connection stands in a record (' connection 1 '); for each lock whether its rule allows (1 or 0), and the owner.
-- The commonest release: of one lock, by the connection that took it, with no other lease on its record before it. So
-- nothing is owed, and lock and record go in one command. If anything is in the way, the long way round begins anew.
local try, mine, l = redis.pcall, ARGV[2]
if not KEYS[3] then l = try('HGET', KEYS[2], 'lease') end
if type(l) == 'string' and string.find(l, mine, 16, true) == 16 and string.byte(l) == 50 then
  local k, r, at = KEYS[1], KEYS[2], string.sub(l, 3, 15)
  local ttl, w = string.match(l, '^(%d+) (%d+)', 16 + #mine)
  local e, now, t = try('PEXPIRETIME', k)
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
    return {ok = string.format('released held=%d', now - (ttl == '0' and at or at - w - ttl))}
  end
end
