// An endless loop ends when its request is cancelled.
func.func @body(%i: i32, %ch: !tfrt.chain) -> (i32, !tfrt.chain, i1) {
  %go = tfrt.constant.i1 true
  %next, %done = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %next, %done, %go : i32, !tfrt.chain, i1
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: Cancelled>>
func.func @main() -> i32 {
  %ch = tfrt.new.chain
  %go = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %0:2 = tfrt.while %go @body(%zero, %ch) : (i32, !tfrt.chain) -> (i32, !tfrt.chain) parallel_iterations(1)
  tfrt.return %0#0 : i32
}
