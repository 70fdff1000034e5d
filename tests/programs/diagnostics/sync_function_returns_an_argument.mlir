// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f(%x: i32) -> i32 attributes {tfrt.sync} {
  tfrt.return %x : i32 // expected-error {{return value 0 is an argument in a sync function}}
}
