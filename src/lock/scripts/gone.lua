-- KEYS: lock, record. ARGV: a connection that its client closed.
local function main()
  local s = look(KEYS[1], KEYS[2])
  if s.early then finish(s) end
  if not s.h or s.alien then return 'marked' end
  local f = {}
  if s.h.connection == ARGV[1] then f[1] = 'connection_open' end
  for _, list in ipairs({s.debts, s.doubts}) do
    for _, d in ipairs(list) do
      if d.c == ARGV[1] then f[#f + 1] = 'open:' .. d.n end
    end
  end
  if #f > 0 then call('HDEL', s.r, unpack(f)) end
  return 'marked'
end
