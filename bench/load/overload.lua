-- Like load.lua, and counts responses by status. Inspecting every response costs wrk more than sending the request, so
-- only the overload part does it.
dofile("load.lua")

responses_2xx, responses_429, responses_503, responses_other = 0, 0, 0, 0

function response(status)
  if status < 300 then
    responses_2xx = responses_2xx + 1
  elseif status == 429 then
    responses_429 = responses_429 + 1
  elseif status == 503 then
    responses_503 = responses_503 + 1
  else
    responses_other = responses_other + 1
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
  local counts = { responses_2xx = 0, responses_429 = 0, responses_503 = 0, responses_other = 0 }
  for _, thread in ipairs(threads) do
    for name, count in pairs(counts) do counts[name] = count + thread:get(name) end
  end
  print(string.format('STATUSES {"ok":%d,"tooMany":%d,"busy":%d,"other":%d}',
    counts.responses_2xx, counts.responses_429, counts.responses_503, counts.responses_other))
end
