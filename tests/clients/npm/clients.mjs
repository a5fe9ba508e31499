// What the clients of npm do with a server: node clients.mjs ADDRESS; prints what was wrong by test, "" for nothing.

import assert from 'node:assert/strict'

import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool } from 'ai'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const address = process.argv[2]
const outcomes = {}

async function test(name, run) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('it hangs')), 60000)
  })
  try {
    await Promise.race([run(), late])
    outcomes[name] = ''
  } catch (error) {
    outcomes[name] = `${error.stack ?? error}`.slice(0, 2000)
  }
  clearTimeout(timer)
}

const sum = 'What is 12 + 7?'
const question = 'What is the weather in Paris?'
const city = z.object({ city: z.string() })
const cityAsJson = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const answer = z.object({ city: z.string(), hot: z.boolean() })

// --- ai, by four ways to the server -------------------------------------------------------------

const openai = createOpenAI({ baseURL: `${address}/v1`, apiKey: 'any' })
const compatible = createOpenAICompatible({
  name: 'akunu',
  baseURL: `${address}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
})
const anthropic = createAnthropic({ baseURL: `${address}/v1`, apiKey: 'any' })
const ways = {
  'openai responses': openai.responses('ember'),
  'openai chat': openai.chat('ember'),
  'openai-compatible': compatible('ember'),
  anthropic: anthropic('ember'),
}

for (const [way, model] of Object.entries(ways)) {
  const common = { model, maxOutputTokens: 60, maxRetries: 0 }
  const asked = []
  const tools = {
    get_weather: tool({
      description: 'Get the weather in a city.',
      inputSchema: city,
      execute: async (input) => {
        asked.push(input)
        return `It is sunny in ${input.city}.`
      },
    }),
  }

  await test(`ai ${way}: generateText`, async () => {
    const { text, finishReason, usage, warnings } = await generateText({ ...common, prompt: sum })
    assert.equal(text, '12 + 7 = 19')
    assert.equal(finishReason, 'stop')
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0)
    assert.deepEqual(warnings ?? [], [])
  })

  await test(`ai ${way}: a system prompt and a conversation`, async () => {
    const messages = [
      { role: 'user', content: sum },
      { role: 'assistant', content: '12 + 7 = 19' },
      { role: 'user', content: [{ type: 'text', text: 'What is 2 + 3?' }] },
    ]
    const { text } = await generateText({ ...common, system: 'Be brief.', messages })
    assert.match(text, /5/)
  })

  await test(`ai ${way}: a text that is cut`, async () => {
    const { finishReason } = await generateText({ ...common, prompt: sum, maxOutputTokens: 2 })
    assert.equal(finishReason, 'length')
  })

  await test(`ai ${way}: streamText`, async () => {
    const stream = streamText({ ...common, prompt: sum, onError: ({ error }) => assert.fail(error) })
    const pieces = []
    for await (const piece of stream.textStream) pieces.push(piece)
    assert.equal(pieces.join(''), '12 + 7 = 19')
    assert.ok((await stream.usage).outputTokens > 0)
    assert.equal(await stream.finishReason, 'stop')
  })

  await test(`ai ${way}: generateObject`, async () => {
    const { object } = await generateObject({ ...common, schema: answer, prompt: question })
    answer.parse(object)
  })

  await test(`ai ${way}: streamObject`, async () => {
    const stream = streamObject({ ...common, schema: answer, prompt: question })
    let last
    for await (const part of stream.partialObjectStream) last = part
    assert.deepEqual(last, await stream.object)
  })

  await test(`ai ${way}: Output.object`, async () => {
    const output = Output.object({ schema: answer })
    const result = await generateText({ ...common, output, prompt: question })
    answer.parse(result.output)
  })

  await test(`ai ${way}: a tool is called and its result sent back`, async () => {
    asked.length = 0
    const { steps, text } = await generateText({
      ...common,
      tools,
      prompt: question,
      stopWhen: stepCountIs(2),
    })
    assert.deepEqual(asked, [{ city: 'Paris' }])
    assert.equal(steps[0].finishReason, 'tool-calls')
    assert.equal(steps[0].toolResults[0].output, 'It is sunny in Paris.')
    assert.equal(steps.length, 2)
    assert.ok(text || steps[1].toolCalls.length)
  })

  await test(`ai ${way}: a tool is called in a stream`, async () => {
    asked.length = 0
    const stream = streamText({
      ...common,
      tools,
      prompt: question,
      stopWhen: stepCountIs(2),
      onError: ({ error }) => assert.fail(error),
    })
    const kinds = new Set()
    for await (const part of stream.fullStream) kinds.add(part.type)
    for (const kind of ['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result'])
      assert.ok(kinds.has(kind), `${kind} is not among ${[...kinds]}`)
    assert.deepEqual(asked, [{ city: 'Paris' }])
    assert.equal((await stream.steps).length, 2)
  })

  for (const toolChoice of ['required', { type: 'tool', toolName: 'get_weather' }]) {
    const chosen = toolChoice.type ?? toolChoice
    await test(`ai ${way}: toolChoice ${chosen}`, async () => {
      const { toolCalls } = await generateText({ ...common, tools, toolChoice, prompt: sum })
      assert.equal(toolCalls[0].toolName, 'get_weather')
      assert.equal(typeof toolCalls[0].input.city, 'string')
    })
  }

  await test(`ai ${way}: toolChoice none`, async () => {
    const { toolCalls } = await generateText({ ...common, tools, toolChoice: 'none', prompt: question })
    assert.equal(toolCalls.length, 0)
  })

  await test(`ai ${way}: settings of sampling`, async () => {
    const { text } = await generateText({ ...common, temperature: 0.7, topP: 0.9, prompt: sum })
    assert.ok(text.length > 0)
  })

  if (way !== 'openai responses') // which has none
    await test(`ai ${way}: stopSequences`, async () => {
      const { text } = await generateText({ ...common, stopSequences: ['='], prompt: sum })
      assert.equal(text, '12 + 7 ')
    })

  await test(`ai ${way}: an error has the server's words`, async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(3000) }]
    await assert.rejects(generateText({ ...common, messages }), (error) => {
      assert.equal(error.statusCode, 400)
      assert.match(error.message, /\d tokens/)
      return true
    })
  })

  await test(`ai ${way}: a stream that is left`, async () => {
    const gone = new AbortController()
    const stream = streamText({ ...common, prompt: sum, abortSignal: gone.signal })
    for await (const _ of stream.textStream) gone.abort()
  })
}

await test('ai openai: completion', async () => {
  const { text } = await generateText({ model: openai.completion('ember'), prompt: 'One, two,', maxOutputTokens: 4 })
  assert.ok(text.length > 0)
})

// --- openai -------------------------------------------------------------------------------------

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'any', maxRetries: 0 })
const messages = [{ role: 'user', content: sum }]
const asking = [{ role: 'user', content: question }]
const weather = {
  type: 'function',
  function: { name: 'get_weather', description: 'Get the weather in a city.', parameters: cityAsJson },
}

await test('openai: chat', async () => {
  const chat = await client.chat.completions.create({ model: 'ember', messages, max_completion_tokens: 30 })
  assert.equal(chat.choices[0].message.content, '12 + 7 = 19')
  assert.ok(chat._request_id)
})

await test('openai: chat as a stream', async () => {
  const stream = client.chat.completions.stream({
    model: 'ember',
    messages,
    stream_options: { include_usage: true },
  })
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? ''
  assert.equal(text, '12 + 7 = 19')
  assert.equal(await stream.finalContent(), text)
  assert.ok((await stream.totalUsage()).completion_tokens > 0)
})

await test('openai: chat.completions.parse', async () => {
  const chat = await client.chat.completions.parse({
    model: 'ember',
    messages: asking,
    max_completion_tokens: 60,
    response_format: zodResponseFormat(answer, 'answer'),
  })
  answer.parse(chat.choices[0].message.parsed)
})

await test('openai: runTools', async () => {
  const asked = []
  const parse = JSON.parse
  const run = (input) => {
    asked.push(input)
    return `It is sunny in ${input.city}.`
  }
  const runner = client.chat.completions.runTools(
    { model: 'ember', messages: asking, tools: [{ type: 'function', function: { ...weather.function, parse, function: run } }] },
    { maxChatCompletions: 2 },
  )
  await runner.done()
  assert.deepEqual(asked, [{ city: 'Paris' }])
  assert.deepEqual(runner.messages.map((each) => each.role).slice(0, 4), ['user', 'assistant', 'tool', 'assistant'])
})

await test('openai: logprobs, n, seed', async () => {
  const chat = await client.chat.completions.create({
    ...{ model: 'ember', messages, n: 2, seed: 3, temperature: 1, logprobs: true, top_logprobs: 2 },
  })
  assert.equal(chat.choices.length, 2)
  assert.equal(chat.choices[0].logprobs.content[0].top_logprobs.length, 2)
})

await test('openai: completions', async () => {
  const stream = await client.completions.create({ model: 'ember', prompt: 'One, two,', max_tokens: 6, stream: true })
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0].text
  const whole = await client.completions.create({ model: 'ember', prompt: 'One, two,', max_tokens: 6 })
  assert.equal(whole.choices[0].text, text)
})

await test('openai: responses', async () => {
  const response = await client.responses.create({ model: 'ember', input: sum, instructions: 'Be brief.' })
  assert.equal(response.output_text, '12 + 7 = 19')
  assert.equal(response.status, 'completed')
})

await test('openai: responses as a stream', async () => {
  const stream = client.responses.stream({ model: 'ember', input: sum })
  let text = ''
  for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
  assert.equal(text, '12 + 7 = 19')
  assert.equal((await stream.finalResponse()).output_text, text)
})

await test('openai: responses.parse', async () => {
  const response = await client.responses.parse({
    model: 'ember',
    input: question,
    max_output_tokens: 60,
    text: { format: zodTextFormat(answer, 'answer') },
  })
  answer.parse(response.output_parsed)
})

await test('openai: responses with a tool and its result', async () => {
  const tools = [{ type: 'function', name: 'get_weather', description: 'Get the weather in a city.', parameters: cityAsJson, strict: true }]
  const first = await client.responses.create({ model: 'ember', input: question, tools })
  const call = first.output.find((item) => item.type === 'function_call')
  assert.deepEqual(JSON.parse(call.arguments), { city: 'Paris' })
  const input = [
    { role: 'user', content: question },
    ...first.output,
    { type: 'function_call_output', call_id: call.call_id, output: 'It is sunny.' },
  ]
  const second = await client.responses.create({ model: 'ember', input, tools, max_output_tokens: 30 })
  assert.ok(second.output.length > 0)
})

await test('openai: models', async () => {
  const found = []
  for await (const model of client.models.list()) found.push(model.id)
  assert.deepEqual(found, ['ember'])
  assert.equal((await client.models.retrieve('ember')).id, 'ember')
})

await test('openai: errors have their classes', async () => {
  await assert.rejects(client.chat.completions.create({ model: 'none', messages }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError)
    assert.equal(error.code, 'model_not_found')
    return true
  })
  await assert.rejects(client.chat.completions.create({ model: 'ember', messages, lora: 'x' }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError)
    assert.equal(error.param, 'lora')
    return true
  })
})

// --- @anthropic-ai/sdk --------------------------------------------------------------------------

const claude = new Anthropic({ baseURL: address, apiKey: 'any', maxRetries: 0 })
const described = { name: 'get_weather', description: 'Get the weather in a city.', input_schema: cityAsJson }

await test('@anthropic-ai/sdk: messages', async () => {
  const message = await claude.messages.create({ model: 'ember', max_tokens: 30, messages })
  assert.deepEqual(message.content.map((block) => [block.type, block.text]), [['text', '12 + 7 = 19']])
  assert.equal(message.stop_reason, 'end_turn')
})

await test('@anthropic-ai/sdk: messages as a stream', async () => {
  const stream = claude.messages.stream({ model: 'ember', max_tokens: 30, messages })
  let text = ''
  stream.on('text', (piece) => (text += piece))
  const message = await stream.finalMessage()
  assert.equal(text, '12 + 7 = 19')
  assert.equal(message.content[0].text, text)
  assert.ok(message.usage.output_tokens > 0)
})

await test('@anthropic-ai/sdk: a tool in a stream, and its result', async () => {
  const body = { model: 'ember', max_tokens: 60, tools: [described] }
  const stream = claude.messages.stream({ ...body, messages: asking })
  const pieces = []
  stream.on('inputJson', (piece) => pieces.push(piece))
  const message = await stream.finalMessage()
  const call = message.content.find((block) => block.type === 'tool_use')
  assert.deepEqual(call.input, { city: 'Paris' })
  assert.deepEqual(JSON.parse(pieces.join('')), { city: 'Paris' })
  assert.equal(message.stop_reason, 'tool_use')
  const result = { type: 'tool_result', tool_use_id: call.id, content: 'It is sunny.' }
  const next = await claude.messages.create({
    ...body,
    messages: [...asking, { role: 'assistant', content: message.content }, { role: 'user', content: [result] }],
  })
  assert.ok(next.content.length > 0)
})

await test('@anthropic-ai/sdk: toolRunner', async () => {
  const asked = []
  const run = async (input) => {
    asked.push(input)
    return 'It is sunny.'
  }
  const runner = claude.beta.messages.toolRunner({
    ...{ model: 'ember', max_tokens: 60, messages: asking, max_iterations: 2 },
    tools: [{ ...described, type: 'custom', run, parse: (input) => input }],
  })
  await runner.runUntilDone()
  assert.deepEqual(asked, [{ city: 'Paris' }])
})

await test('@anthropic-ai/sdk: countTokens', async () => {
  const { input_tokens } = await claude.messages.countTokens({ model: 'ember', messages })
  const message = await claude.messages.create({ model: 'ember', max_tokens: 1, messages })
  const { usage } = message
  assert.equal(input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0))
})

await test('@anthropic-ai/sdk: errors have their classes', async () => {
  await assert.rejects(claude.messages.create({ model: 'none', max_tokens: 3, messages }), (error) => {
    assert.ok(error instanceof Anthropic.NotFoundError)
    return true
  })
})

await test('@anthropic-ai/sdk: models', async () => {
  const found = []
  for await (const model of claude.models.list()) found.push(model.id)
  assert.deepEqual(found, ['ember'])
})

// --- ollama -------------------------------------------------------------------------------------

const ollama = new Ollama({ host: address })

await test('ollama: chat', async () => {
  const { message, done_reason, eval_count } = await ollama.chat({ model: 'ember', messages })
  assert.equal(message.content, '12 + 7 = 19')
  assert.equal(done_reason, 'stop')
  assert.ok(eval_count > 0)
})

await test('ollama: chat as a stream', async () => {
  let text = ''
  for await (const part of await ollama.chat({ model: 'ember', messages, stream: true })) text += part.message.content
  assert.equal(text, '12 + 7 = 19')
})

await test('ollama: a stream that is left', async () => {
  const stream = await ollama.chat({ model: 'ember', messages, stream: true })
  await assert.rejects(async () => {
    for await (const _ of stream) stream.abort()
  }, { name: 'AbortError' })
})

await test('ollama: generate', async () => {
  const { response } = await ollama.generate({ model: 'ember', prompt: sum, options: { num_predict: 30 } })
  assert.equal(response, '12 + 7 = 19')
})

await test('ollama: a format', async () => {
  const format = z.toJSONSchema(answer)
  const { message } = await ollama.chat({ model: 'ember', messages: asking, format, options: { num_predict: 60 } })
  answer.parse(JSON.parse(message.content))
})

await test('ollama: a tool and its result', async () => {
  const first = await ollama.chat({ model: 'ember', messages: asking, tools: [weather] })
  const call = first.message.tool_calls[0].function
  assert.deepEqual([call.name, call.arguments], ['get_weather', { city: 'Paris' }])
  const result = { role: 'tool', tool_name: 'get_weather', content: 'It is sunny.' }
  const next = await ollama.chat({
    ...{ model: 'ember', messages: [...asking, first.message, result], tools: [weather] },
    options: { num_predict: 30 },
  })
  assert.ok(next.message.content || next.message.tool_calls)
})

await test('ollama: list, show, ps, version', async () => {
  assert.deepEqual((await ollama.list()).models.map((each) => each.name), ['ember'])
  assert.ok((await ollama.show({ model: 'ember' })).capabilities.includes('tools'))
  assert.deepEqual((await ollama.ps()).models.map((each) => each.name), ['ember'])
  assert.match((await ollama.version()).version, /^\d/)
})

await test('ollama: an error', async () => {
  await assert.rejects(ollama.chat({ model: 'none', messages }), { status_code: 404 })
})

console.log(JSON.stringify(outcomes))
process.exit(0)
