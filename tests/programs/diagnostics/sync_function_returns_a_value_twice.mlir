// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() -> (i32, i32) attributes {tfrt.sync} {
  %x = tfrt.constant.i32 1
  tfrt.return %x, %x : i32, i32 // expected-error {{return value 1 is duplicated in a sync function}}
}
