func.func @added(%a: i32, %b: i32) -> i32 {
  %sum = tfrt.add.i32 %a, %b
  tfrt.return %sum : i32
}

func.func @first(%a: i32, %b: i32) -> i32 {
  tfrt.return %a : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 5,2
func.func @main() -> (i32, i32) {
  %yes = tfrt.constant.i1 true
  %no = tfrt.constant.i1 false
  %a = tfrt.constant.i32 2
  %b = tfrt.constant.i32 3
  %x = tfrt.cond %yes @added @first (%a, %b) : (i32, i32) -> (i32)
  %y = tfrt.cond %no @added @first (%a, %b) : (i32, i32) -> (i32)
  tfrt.return %x, %y : i32, i32
}
