-- KEYS: lock, record. ARGV: token, milliseconds.
local function main()
  local s, ttl = look(KEYS[1], KEYS[2]), tonumber(ARGV[2])
  if s.early then finish(s) end
  if s.state ~= 'current' or s.h.token ~= ARGV[1] then return 'lost' end
  if #s.doubts > 0 then return 'doubtful' end
  local left = call('PTTL', s.k)
  if left >= 0 and left < ttl then
    call('PEXPIRE', s.k, ttl)
    call('PEXPIREAT', s.r, call('PEXPIRETIME', s.k) + s.window)
    left = ttl
  end
  return 'renewed ' .. string.format('%.0f', left < 0 and ttl or left)
end
