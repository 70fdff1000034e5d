// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 10
func.func @main() -> i32 {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %a = tfrt.constant.i32 5
  %x = tfrt.if %yes, %no, %a : (i1, i32) -> (i32) {
    %y = tfrt.if %no, %a : (i32) -> (i32) {
      tfrt.return %a : i32
    } else {
      %sum = tfrt.add.i32 %a, %a
      tfrt.return %sum : i32
    }
    tfrt.return %y : i32
  } else {
    tfrt.return %a : i32
  }
  tfrt.return %x : i32
}
