-- MIGRATE of several keys. KEYS: each lock and its record, then the other keys. ARGV: how many locks; each caller; the
-- command up to its keys.
local function main()
  local n, parts, go, command = tonumber(ARGV[1]), {}, {}, {unpack(ARGV, tonumber(ARGV[1]) + 2)}
  local before = #command
  for i = 1, n do
    local s, may = look(KEYS[2 * i - 1], KEYS[2 * i])
    may, parts[i] = release(s, who(ARGV[i + 1]))
    if may then
      go[i] = s
      command[#command + 1] = s.k
    end
  end
  for i = 2 * n + 1, #KEYS do command[#command + 1] = KEYS[i] end
  if #command == before then return {table.concat(parts, ';'), {ok = 'NOKEY'}} end
  local a = redis.pcall(unpack(command))
  for i, s in pairs(go) do
    if call('EXISTS', s.k) == 1 then parts[i] = '-' else removed(s) end
  end
  return {table.concat(parts, ';'), a}
end
