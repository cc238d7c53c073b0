-- KEYS: lock, record. ARGV: token, or '-' for whoever holds it.
local function main()
  local s = look(KEYS[1], KEYS[2])
  if s.early then finish(s) end
  if ARGV[1] ~= '-' and (s.state ~= 'current' or s.h.token ~= ARGV[1]) then return 'lost' end
  if s.at == -2 then return 'absent' end
  local lease = s.state == 'current' or s.state == 'adrift'
  local held = lease and since(s.h.acquired_at, s.now or clock()) or '?'
  call('DEL', s.k)
  if not s.alien and s.state ~= 'unmanaged' then finish(s) end
  return 'freed ' .. held
end
