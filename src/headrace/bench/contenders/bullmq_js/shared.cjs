// What client and worker share: where BullMQ is installed, and the server both speak to.
'use strict'
const { createRequire } = require('node:module')

const { Queue, Worker } = createRequire(`${process.env.BENCH_BULLMQ}/`)('bullmq')
const { hostname, port, pathname } = new URL(process.env.BENCH_REDIS)
const connection = { host: hostname, port: Number(port), db: Number(pathname.slice(1) || 0), maxRetriesPerRequest: null }

// Seconds of the system's clock, to the microsecond.
const now = () => (performance.timeOrigin + performance.now()) / 1000

module.exports = { Queue, Worker, connection, now, QUEUE: 'bench' }
