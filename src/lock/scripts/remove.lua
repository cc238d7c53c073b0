-- KEYS: lock, record, then the command's other keys. ARGV: caller; how a refusal is answered; the condition and its
-- value; the command.
local function main()
  return remove(look(KEYS[1], KEYS[2]), who(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], 5)
end
