// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: Slept for 100 microseconds
// CHECK-NEXT: int32 = 100
func.func @main() -> !tfrt.chain {
  %x = tfrt.constant.i32 100
  %c0 = "tfrt_test.blocking.usleep"(%x) : (i32) -> !tfrt.chain
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %c1 : !tfrt.chain
}
