// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,2
func.func @main() -> (i32, i32) {
  %c0 = tfrt.new.chain
  %a = tfrt.constant.i32 1
  %b = tfrt.constant.i32 2
  %0:2 = "tfrt_test.identity"(%c0, %a, %b) : (!tfrt.chain, i32, i32) -> (i32, i32)
  tfrt.return %0#0, %0#1 : i32, i32
}
