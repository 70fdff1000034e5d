func.func @body(%i: i32) -> (i32, i1) {
  %one = tfrt.constant.i32 1
  %hundred = tfrt.constant.i32 99
  %next = "tfrt_test.async_add.i32"(%i, %one) : (i32, i32) -> i32
  %go = "tfrt.lessequal.i32"(%next, %hundred) : (i32, i32) -> i1
  tfrt.return %next, %go : i32, i1
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 100
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %go = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %x = tfrt.while %go @body(%zero) : (i32) -> (i32) parallel_iterations(1)
  %c1 = tfrt.print.i32 %x, %c0
  tfrt.return %c1 : !tfrt.chain
}
