import { parseConfig, USAGE } from './config.ts'
import { renderReport } from './report.ts'
import { soak } from './soak.ts'

async function main(): Promise<number> {
  if (process.argv.includes('--help')) {
    console.log(USAGE)
    return 0
  }
  const { json, ...options } = parseConfig(process.argv.slice(2))
  console.error(`seed ${options.seed}`)
  const report = await soak({ ...options, note: (text) => console.error(text) })
  console.log(json ? JSON.stringify(report, null, 2) : renderReport(report))
  return report.ok ? 0 : 1
}

process.exitCode = await main()
