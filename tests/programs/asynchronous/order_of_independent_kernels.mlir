// The first user of a value runs first; kernels without operands run in the reverse order of the program.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 2
func.func @main() {
  %c0 = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %a = tfrt.print.i32 %one, %c0
  %b = tfrt.print.i32 %two, %c0
  tfrt.return
}
