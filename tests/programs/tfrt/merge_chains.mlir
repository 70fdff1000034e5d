// CHECK-LABEL: --- Running 'merge':
// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 2
func.func @merge() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %one = tfrt.constant.i32 1
  %two = tfrt.constant.i32 2
  %first = tfrt.print.i32 %one, %ch
  %both = tfrt.merge.chains %first, %two : !tfrt.chain, i32
  %last = tfrt.print.i32 %two, %both
  tfrt.return %last : !tfrt.chain
}

// A chain of an error is that error.
// CHECK-LABEL: --- Running 'merge_with_error':
// CHECK-NEXT: 'merge_with_error' returned <<error: something bad happened>>
func.func @merge_with_error() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %merged = tfrt.merge.chains %ch, %bad : !tfrt.chain, i32
  tfrt.return %merged : !tfrt.chain
}
