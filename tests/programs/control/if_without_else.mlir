// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 1
// CHECK-NOT: int32 = 2
func.func @main() {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  tfrt.if %yes, %one : (i32) -> () {
    %c0 = tfrt.new.chain
    %c1 = tfrt.print.i32 %one, %c0
    tfrt.return
  }
  tfrt.if %no, %two : (i32) -> () {
    %c0 = tfrt.new.chain
    %c1 = tfrt.print.i32 %two, %c0
    tfrt.return
  }
  tfrt.return
}
