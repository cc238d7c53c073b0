-- Any failure goes back with the server's own text, without the script's name in it.
local function failed(a) return type(a) == 'table' and a.err end
local ok, answer = pcall(main)
if ok then return answer end
return {err = failed(answer) or answer}
