-- The requests that wrk sends. Usage:
--   wrk … -s load.lua ADDRESS -- WORKLOAD KEYS_FILE FIRST_MEMBER MEMBERS_PER_KEY FIRST_INTENT THREADS SERIAL
-- where KEYS_FILE holds one API key per line. The members of the key on line k are FIRST_MEMBER + (k - 1) *
-- MEMBERS_PER_KEY and onwards; the intents to complete are numbered from FIRST_INTENT, and each is sent once.
-- SERIAL is a text unique to the run, for idempotency keys.
--
-- A request is concatenated from three texts, since wrk.format would cost as much as sending the request.

local threads_made = 0

function setup(thread)
  thread:set("thread_number", threads_made)
  threads_made = threads_made + 1
end

local format, random = string.format, math.random
local build

function init(args)
  local workload, keys_file = args[1], args[2]
  local first_member, members_per_key = tonumber(args[3]), tonumber(args[4])
  local next_intent, threads, serial = tonumber(args[5]) + thread_number, tonumber(args[6]), args[7]
  math.randomseed(os.time() * 1000 + thread_number)

  local keys = {}
  for key in io.lines(keys_file) do keys[#keys + 1] = key end

  local host = wrk.host .. ":" .. wrk.port
  local requests = 0
  local function idempotency_key()
    requests = requests + 1
    return format("%s-%d-%d", serial, thread_number, requests)
  end

  -- An id always has 30 characters (29 with a two-letter prefix), so the length of a body is constant.
  local function post_heads(path, body_length)
    local heads = {}
    for k, key in ipairs(keys) do
      heads[k] = "POST " .. path .. " HTTP/1.1\r\nHost: " .. host .. "\r\nX-Api-Key: " .. key
        .. "\r\nContent-Type: application/json\r\nContent-Length: " .. body_length .. "\r\n"
    end
    return heads
  end

  local intent_start, intent_end = '{"memberId":"mem_', '","amount":{"amount":5000,"currency":"GBP"}}'
  local intent_heads = post_heads("/v1/pay/withdrawals/intent", #intent_start + 26 + #intent_end)
  local function intent(header)
    local k = #keys == 1 and 1 or random(#keys)
    local member = first_member + (k - 1) * members_per_key + random(members_per_key) - 1
    return intent_heads[k] .. header .. intent_start .. format("%026d", member) .. intent_end
  end

  local complete_start, complete_end = '{"withdrawalIntentId":"wi_', '"}'
  local complete_heads = post_heads("/v1/pay/withdrawals/complete", #complete_start + 26 + #complete_end)
  local function complete(header)
    local id = format("%026d", next_intent)
    next_intent = next_intent + threads
    return complete_heads[1] .. header .. complete_start .. id .. complete_end
  end

  local key_end = " HTTP/1.1\r\nHost: " .. host .. "\r\nX-Api-Key: " .. keys[1] .. "\r\n"
  local function member_id()
    return format("mem_%026d", first_member + random(members_per_key) - 1)
  end

  local function balance()
    return "GET /v1/pay/members/" .. member_id() .. "/balance" .. key_end .. "\r\n"
  end

  local function read()
    return "GET /v1/members/" .. member_id() .. key_end .. "\r\n"
  end

  local write_head = key_end .. "Content-Type: application/json\r\nContent-Length: 27\r\n\r\n"
  local function write()
    return format('PATCH /v1/members/%s%s{"lastName":"Okafor-%05d"}', member_id(), write_head, random(99999))
  end

  local without_key = "\r\n"
  local function with_key()
    return "X-Idempotency-Key: " .. idempotency_key() .. "\r\n\r\n"
  end

  local builders = {
    ["intent"] = function() return intent(without_key) end,
    ["intent-key"] = function() return intent(with_key()) end,
    ["complete"] = function() return complete(without_key) end,
    ["complete-key"] = function() return complete(with_key()) end,
    ["read"] = read,
    ["write"] = write,
    ["mixed"] = function()
      local die = random(10)
      if die <= 7 then return intent(without_key) end
      if die <= 9 then return complete(without_key) end
      return balance()
    end,
  }
  build = builders[workload]
end

function request()
  return build()
end

function done(summary, latency)
  local errors = summary.errors
  print(format(
    'RESULT {"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"maxUs":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.status, errors.timeout
  ))
end
