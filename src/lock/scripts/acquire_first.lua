-- KEYS: lock, record, fence key if wanted. ARGV: caller, the command. A refused acquire ends here.
local taken = redis.pcall(unpack(ARGV, 2))
if not taken or taken == 0 then return taken end
