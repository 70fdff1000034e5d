func.func @once(%a: i32) -> i32 {
  tfrt.return %a : i32
}

func.func @twice(%a: i32) -> i32 {
  %sum = tfrt.add.i32 %a, %a
  tfrt.return %sum : i32
}

func.func @thrice(%a: i32) -> i32 {
  %two = tfrt.add.i32 %a, %a
  %sum = tfrt.add.i32 %two, %a
  tfrt.return %sum : i32
}

// An index out of range chooses the last branch.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 10,20,30,30,30
func.func @main() -> (i32, i32, i32, i32, i32) {
  %a = tfrt.constant.i32 10
  %i0 = tfrt.constant.i32 0
  %i1 = tfrt.constant.i32 1
  %i2 = tfrt.constant.i32 2
  %i3 = tfrt.constant.i32 3
  %i4 = tfrt.constant.i32 -1
  %0 = tfrt.case %i0 [@once, @twice, @thrice] (%a) : (i32) -> (i32)
  %1 = tfrt.case %i1 [@once, @twice, @thrice] (%a) : (i32) -> (i32)
  %2 = tfrt.case %i2 [@once, @twice, @thrice] (%a) : (i32) -> (i32)
  %3 = tfrt.case %i3 [@once, @twice, @thrice] (%a) : (i32) -> (i32)
  %4 = tfrt.case %i4 [@once, @twice, @thrice] (%a) : (i32) -> (i32)
  tfrt.return %0, %1, %2, %3, %4 : i32, i32, i32, i32, i32
}

// CHECK-LABEL: --- Running 'of_an_error':
// CHECK-NEXT: 'of_an_error' returned <<error: something bad happened>>
func.func @of_an_error() -> i32 {
  %a = tfrt.constant.i32 10
  %bad = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
  %x = tfrt.case %bad [@once, @twice] (%a) : (i32) -> (i32)
  tfrt.return %x : i32
}
