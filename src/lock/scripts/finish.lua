-- The names of a debt's fields, appended to f.
local function fields(f, d)
  f[#f + 1] = 'debt:' .. d.n
  f[#f + 1] = 'unpaid:' .. d.n
  f[#f + 1] = 'open:' .. d.n
end

-- The last lease leaves the record; its doubts are settled with it, and d, if given, is paid.
local function finish(s, d)
  if #s.debts == 0 then return call('DEL', s.r) end
  local f = {'owner', 'token', 'connection_open', 'owing', 'fence', 'opened'}
  for _, x in ipairs(s.doubts) do fields(f, x) end
  if d then fields(f, d) end
  call('HDEL', s.r, unpack(f))
  call('PEXPIREAT', s.r, s.debts[#s.debts].due + s.window)
end

local function without_ttl(s) return s.at == -1 and ' nottl' or '' end
