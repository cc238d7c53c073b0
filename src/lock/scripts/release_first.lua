-- DEL, UNLINK. KEYS: each lock and its record, then the other keys. ARGV: the command; how a first lease of the caller's
-- connection stands in a record (' connection 1 '); the window of the first lock's rule; for each lock whether its rule
-- allows (1 or 0), and the owner.
-- The commonest releases: of one lock, by the connection that took it or another of its owner, with no other lease on its
-- record before it. So nothing is owed, and lock and record go in one command. If anything is in the way, the long way
-- round begins anew.
local try, args, s, keys, l = redis.pcall, ARGV, string, KEYS
local k, r = keys[1], keys[2]
local mine = args[2]
if not keys[3] then l = try('HGET', r, 'lease') end
if type(l) == 'string' and s.byte(l) == 50 then
  local at, own = s.sub(l, 3, 15), s.find(l, mine, 16, true) == 16
  local e = try('PEXPIRETIME', k)
  if type(e) == 'number' then
    local fit, b, ttl, w, t = own and e + args[3] - at == 0, 16 + #mine
    if not fit then
      if not own then
        b = s.match(l, '^ %S+ 1 ()', 16)
        b = try('HGET', r, 'owner') == s.sub(args[4], 2) and b
      end
      if b then
        ttl, w = s.match(l, '^(%d+) (%d+)', b)
        -- Where an extend changed the expiry, the record's own tells.
        t = e + w - at == 0 and at or try('PEXPIRETIME', r)
        fit = tonumber(t) and (e > 0 and (e + w - t) ^ 2 < 9 or e == -1 and t == -1)
      end
    end
    if fit and not own then
      t = try('TIME')
      fit = t[1]
    end
    if fit and try(args[1], k, r) == 2 then
      -- How long its own lease was held, lockward knows.
      if own then return 1 end
      return {ok = s.format('pooled held=%d', t[1] * 1000 + t[2] / 1000 - (ttl == '0' and at or at - w - ttl))}
    end
  end
end
