// Casts truncate towards zero.
// CHECK-LABEL: --- Running 'to_floats':
// CHECK-NEXT: 'to_floats' returned -3.000000e+00,-3.000000e+00
func.func @to_floats() -> (f32, f64) {
  %x = tfrt.constant.i64 -3
  %0 = "tfrt.cast.i64_to_f32"(%x) : (i64) -> f32
  %1 = "tfrt.cast.i64_to_f64"(%x) : (i64) -> f64
  tfrt.return %0, %1 : f32, f64
}

// CHECK-LABEL: --- Running 'to_integers':
// CHECK-NEXT: 'to_integers' returned -2,2
func.func @to_integers() -> (i64, i64) {
  %x = tfrt.constant.f32 -2.75
  %y = tfrt.constant.f64 2.75
  %0 = "tfrt.cast.f32_to_i64"(%x) : (f32) -> i64
  %1 = "tfrt.cast.f64_to_i64"(%y) : (f64) -> i64
  tfrt.return %0, %1 : i64, i64
}
