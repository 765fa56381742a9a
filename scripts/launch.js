// Runs one of our TypeScript programs. Plain JavaScript, so that any Node can say what is wrong with a machine.
//   node scripts/launch.js [--if-possible] <program.ts> [argument…]
import { argv, exit, platform, versions } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ifPossible = argv[2] === '--if-possible'
if (ifPossible) argv.splice(2, 1)
const obstacle = findObstacle()
if (obstacle === undefined) {
  const program = fileURLToPath(new URL(`../${argv[2]}`, import.meta.url))
  argv.splice(1, 2, program)
  await import(pathToFileURL(program).href)
} else if (!ifPossible) {
  console.error(obstacle)
  exit(1)
}

function findObstacle() {
  // What is only built may be used elsewhere, or from elsewhere.
  if (platform !== 'linux' && !ifPossible)
    return 'Airlock isolates with the Linux kernel: start it on a Linux machine or VM, and set AIRLOCK_URL here to its address.'
  if (Number.parseInt(versions.node, 10) < 24)
    return `Airlock needs Node 24, and this is ${versions.node}: run "npm ci" with optional dependencies, which brings it.`
  return undefined
}
