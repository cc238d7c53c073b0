-- MSET, MSETNX, MSETEX: one refused lock refuses all. KEYS: the command's keys in order, then each caller's record, then
-- the fence keys. ARGV: how many locks; keys; acquire, overwrite or present (XX); the command; the number of options;
-- for each lock its place among the keys, the place of its fence key or 0, and the caller; the values; the options.
local function main()
  local n, m, kind, command = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], string.upper(ARGV[4])
  local values = 5 + 3 * n
  local single = command ~= 'MSETEX'
  local found, seen, parts, fenced = {}, {}, {}, false
  for i = 1, n do
    local k = KEYS[tonumber(ARGV[3 * i + 3])]
    parts[i] = '-'
    if not seen[k] then
      seen[k] = true
      local s, w = look(k, KEYS[m + i]), who(ARGV[3 * i + 5])
      local place = s.at ~= -2 and row(s, w)
      local why = place == 'debtor' and 'late' or place == 'other' and reason(s, w) or place == 'refused' and 'unmanaged'
      if place and kind == 'acquire' then parts[i] = 'contended'
      elseif why and kind == 'present' then
        parts[i] = 'refused overwrite ' .. why .. without_ttl(s)
        return {table.concat(parts, ';'), 0}
      elseif why then
        parts[i] = 'refused overwrite ' .. why .. without_ttl(s)
        return {table.concat(parts, ';'), held(k)}
      end
      local fence = ARGV[3 * i + 4] ~= '0'
      if i == 1 or fence and not fenced then
        need(s, 'EXISTS', 'TIME', 'PTTL', 'HSET', 'PEXPIRE', 'PEXPIREAT', 'PERSIST', fence and 'GET', fence and 'SET')
        fenced = fence
      end
      found[i] = {s = s, w = w, place = place}
    end
  end
  local function write(first, last, name)
    local c = {name}
    if not single then c[2] = last - first + 1 end
    for i = first, last do
      c[#c + 1] = KEYS[i]
      c[#c + 1] = ARGV[values + i]
    end
    for i = values + m + 1, #ARGV do
      local word = string.upper(string.match(ARGV[i], '^%Z*'))
      -- A key that is named again further on is there by then.
      if first == 1 or word ~= 'NX' and word ~= 'XX' then c[#c + 1] = ARGV[i] end
    end
    return redis.pcall(unpack(c))
  end
  local a
  if m <= 1000 then a = write(1, m, ARGV[4])
  else
    -- unpack cannot take them all: the condition is checked first, then they are written part by part.
    local there = 0
    for i = 1, m, 1000 do there = there + call('EXISTS', unpack(KEYS, i, math.min(i + 999, m))) end
    local refused = kind == 'acquire' and there > 0 or kind == 'present' and there < m
    a = refused and 0
    for i = 1, refused and 0 or m, 1000 do
      a = write(i, math.min(i + 999, m), single and 'MSET' or ARGV[4])
      if type(a) == 'table' and a.err then break end
    end
    if not refused and command == 'MSETNX' then a = 1 end
  end
  if type(a) == 'table' and a.err then return a end
  if a == 0 then return {table.concat(parts, ';'), a} end
  for i = 1, n do
    local x = found[i]
    if x then
      if x.place == 'holder' or x.place == 'sibling' then
        parts[i] = 'overwritten' .. follow(x.s, x.w, x.w.max > 0 and x.w.max or x.w.default)
      else parts[i] = grant(x.s, x.w, KEYS[tonumber(ARGV[3 * i + 4])]) end
    end
  end
  return {table.concat(parts, ';'), a}
end
