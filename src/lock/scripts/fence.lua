-- KEYS: lock, record. ARGV: caller. The fencing token, for the lease's own connection, or for its owner while he owes
-- nothing on this lock.
local function main()
  local s, w = look(KEYS[1], KEYS[2]), who(ARGV[1])
  if s.state ~= 'current' or not s.h.fence then return false end
  if s.h.connection ~= w.c then
    if s.h.owner ~= w.o then return false end
    for _, d in ipairs(s.debts) do
      if d.o == w.o then return false end
    end
  end
  return tonumber(s.h.fence)
end
