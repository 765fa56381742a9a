// For the command line in this repository, which speaks routes by their names. Not a part of what users install.
export { streamCommand } from './command.ts'
export { streamStep } from './step.ts'
export { openConnection } from './node/connection.ts'
export { Transport } from './transport/transport.ts'
