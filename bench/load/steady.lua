-- Like load.lua, at a steady pace: each connection waits for 40 ms after every response, so eight send some 180 a second.
dofile("load.lua")

function delay()
  return 40
end
