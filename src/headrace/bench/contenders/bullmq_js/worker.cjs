// BullMQ's worker: the tasks of the benchmark, 100 at once.
'use strict'
const { openSync, writeSync } = require('node:fs')
const { Worker, connection, now, QUEUE } = require('./shared.cjs')

const notes = openSync(process.env.BENCH_NOTES, 'a', 0o600)

const tasks = {
  noop: async () => {},
  stamp: async (sent) => {
    const at = now()
    writeSync(notes, `${at.toFixed(6)} ${(at - sent).toFixed(6)}\n`)
  },
  doze: () => new Promise((resolve) => setTimeout(resolve, 1000))
}

const worker = new Worker(QUEUE, (job) => tasks[job.name](job.data.value), { connection, concurrency: 100 })
worker.on('error', (error) => console.error(error))
process.on('SIGTERM', () => worker.close().then(() => process.exit(0)))
