-- KEYS: lock, record. ARGV: token.
local function main()
  local s = look(KEYS[1], KEYS[2])
  if s.early then finish(s) end
  if not s.h or s.h.token ~= ARGV[1] or s.alien then return 'ended' end
  if s.state == 'current' or s.state == 'adrift' then
    return 'live ' .. string.format('%.0f', call('PTTL', s.k))
  end
  return s.last and 'expired' or 'ended'
end
