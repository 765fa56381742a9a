// What sandboxes are started from is one file each: the guest with its drivers, and the unpacker of images.
import '../packages/guest/build.ts'
import '../packages/data-plane/build.ts'
