func.func @load(%ch: !tfrt.chain) -> i32 {
  %seven = tfrt.constant.i32 7
  %done = tfrt.print.i32 %seven, %ch
  tfrt.return %seven : i32
}

// The function runs once in a request.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 7
// CHECK-NEXT: 'main' returned 7,7
func.func @main() -> (i32, i32) {
  %ch = tfrt.new.chain
  %a = tfrt.once @load(%ch) : (!tfrt.chain) -> (i32)
  %b = tfrt.once @load(%ch) : (!tfrt.chain) -> (i32)
  tfrt.return %a, %b : i32, i32
}

// Another function of the driver has another request.
// CHECK-LABEL: --- Running 'again':
// CHECK-NEXT: int32 = 7
// CHECK-NEXT: 'again' returned 7
func.func @again() -> i32 {
  %ch = tfrt.new.chain
  %a = tfrt.once @load(%ch) : (!tfrt.chain) -> (i32)
  tfrt.return %a : i32
}
