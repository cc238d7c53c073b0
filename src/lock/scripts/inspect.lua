-- KEYS: lock, record. Field and value by turns; the owner token is left out.
local function main()
  local s = look(KEYS[1], KEYS[2])
  local state = s.alien and 'unmanaged' or s.state
  if state == 'current' then state = 'held' end
  local out = {'exists', s.at == -2 and '0' or '1', 'state', state, 'ttl', string.format('%.0f', call('PTTL', s.k))}
  local h = s.h or {}
  if h.acquired_at and not s.alien then h.acquired_at = string.format('%.0f', h.acquired_at) end
  if s.state == 'current' or s.state == 'adrift' or s.alien then
    for _, name in ipairs({'owner', 'connection', 'connection_open', 'fence', 'acquired_at'}) do
      if h[name] then
        out[#out + 1] = name
        out[#out + 1] = h[name]
      end
    end
  end
  for _, d in ipairs(s.debts) do
    out[#out + 1] = 'debt'
    out[#out + 1] = string.format('%.0f', d.due) .. ' ' .. d.o
  end
  return out
end
