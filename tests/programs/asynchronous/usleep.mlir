// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: Slept for 100 microseconds
func.func @main() {
  %x = tfrt.constant.i32 100
  "tfrt_test.usleep"(%x) : (i32) -> ()
  tfrt.return
}
