func.func @body(%i: i32, %sum: i32) -> (i32, i32, i1) {
  %one = tfrt.constant.i32 1
  %ten = tfrt.constant.i32 10
  %next = tfrt.add.i32 %i, %one
  %more = tfrt.add.i32 %sum, %next
  %go = "tfrt.lessequal.i32"(%next, %ten) : (i32, i32) -> i1
  tfrt.return %next, %more, %go : i32, i32, i1
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 11,66
func.func @main() -> (i32, i32) {
  %go = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %0:2 = tfrt.while %go @body(%zero, %zero) : (i32, i32) -> (i32, i32) parallel_iterations(1)
  tfrt.return %0#0, %0#1 : i32, i32
}

// Each body is a task of the work queue.
// CHECK-LABEL: --- Running 'in_parallel':
// CHECK-NEXT: 'in_parallel' returned 11,66
func.func @in_parallel() -> (i32, i32) {
  %go = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %0:2 = tfrt.while %go @body(%zero, %zero) : (i32, i32) -> (i32, i32) parallel_iterations(4)
  tfrt.return %0#0, %0#1 : i32, i32
}

// A false condition returns the arguments.
// CHECK-LABEL: --- Running 'never':
// CHECK-NEXT: 'never' returned 0,0
func.func @never() -> (i32, i32) {
  %stop = tfrt.constant.i1 false
  %zero = tfrt.constant.i32 0
  %0:2 = tfrt.while %stop @body(%zero, %zero) : (i32, i32) -> (i32, i32) parallel_iterations(1)
  tfrt.return %0#0, %0#1 : i32, i32
}
