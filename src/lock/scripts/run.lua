local ok, answer = pcall(main)
if ok and not (type(answer) == 'table' and answer.err) then return answer end
return failure(answer)
