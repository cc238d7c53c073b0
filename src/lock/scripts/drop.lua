-- KEYS: lock, record. ARGV: an owner that ended with its connection: its debts go, and its lease will owe nothing.
local function main()
  local s = look(KEYS[1], KEYS[2])
  if not s.h or s.alien then return 'marked' end
  local f, kept, last = {'owing', 'connection_open'}, {}, s.early
  if s.h.owner ~= ARGV[1] then f = {} end
  for _, d in ipairs(s.debts) do
    if d.o ~= ARGV[1] then kept[#kept + 1] = d
    else
      fields(f, d)
      last = last or d == s.last or not s.due
    end
  end
  if not s.past then
    for _, d in ipairs(s.doubts) do
      if d.o == ARGV[1] then fields(f, d) end
    end
  end
  if #f > 0 then call('HDEL', s.r, unpack(f)) end
  s.debts = kept
  if last then finish(s) end
  return 'marked'
end
