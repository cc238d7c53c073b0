-- The long way round.
local function main()
  local n, sum, parts, seen, c = #args - 3, 0, {}, {}, string.match(mine, '%S+')
  for i = 1, n do
    local k = KEYS[2 * i - 1]
    parts[i] = '-'
    if not seen[k] then
      seen[k] = true
      local s, go = look(k, KEYS[2 * i])
      local free = s.at == -2
      local w = args[i + 3]
      go, parts[i] = release(s, {allow = string.byte(w) == 49, c = c, o = string.sub(w, 2)})
      -- Of a lock that is free too: a server that may not be written to says so.
      if go or free then sum = sum + call(args[1], k) end
      if go then removed(s) end
    end
  end
  for i = 2 * n + 1, #KEYS, 1000 do sum = sum + call(args[1], unpack(KEYS, i, math.min(i + 999, #KEYS))) end
  return {table.concat(parts, ';'), sum}
end
