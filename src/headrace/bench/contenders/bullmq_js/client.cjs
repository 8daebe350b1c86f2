// BullMQ's client, told by lines of JSON on standard input what to add; answers each with a line when it is stored.
'use strict'
const { createInterface } = require('node:readline')
const { Queue, connection, QUEUE } = require('./shared.cjs')

const SLICE = 1000
const queue = new Queue(QUEUE, { connection })

async function add ({ task, values }) {
  if (values.length === 1) {
    await queue.add(task, { value: values[0] })
    return
  }
  for (let first = 0; first < values.length; first += SLICE) {
    await queue.addBulk(values.slice(first, first + SLICE).map((value) => ({ name: task, data: { value } })))
  }
}

async function answer (line) {
  const order = JSON.parse(line)
  try {
    await add(order)
    console.log(JSON.stringify({ id: order.id }))
  } catch (error) {
    console.log(JSON.stringify({ id: order.id, error: String(error) }))
  }
}

const lines = createInterface({ input: process.stdin })
lines.on('line', answer)
lines.on('close', () => queue.close())
queue.waitUntilReady().then(() => console.log(JSON.stringify({ id: 0 })))
