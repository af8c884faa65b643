-- As load.lua, and counts the answers by status. Looking at every answer costs wrk more than sending the request, so
-- that only the part about overload does it.
dofile("load.lua")

answers_2xx, answers_429, answers_503, answers_other = 0, 0, 0, 0

function response(status)
  if status < 300 then
    answers_2xx = answers_2xx + 1
  elseif status == 429 then
    answers_429 = answers_429 + 1
  elseif status == 503 then
    answers_503 = answers_503 + 1
  else
    answers_other = answers_other + 1
  end
end

local threads = {}
local setup_load, done_load = setup, done

function setup(thread)
  setup_load(thread)
  threads[#threads + 1] = thread
end

function done(summary, latency)
  done_load(summary, latency)
  local counts = { answers_2xx = 0, answers_429 = 0, answers_503 = 0, answers_other = 0 }
  for _, thread in ipairs(threads) do
    for name, count in pairs(counts) do counts[name] = count + thread:get(name) end
  end
  print(string.format('STATUSES {"ok":%d,"tooMany":%d,"busy":%d,"other":%d}',
    counts.answers_2xx, counts.answers_429, counts.answers_503, counts.answers_other))
end
