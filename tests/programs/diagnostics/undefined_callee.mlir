// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f(%x: i32) -> i32 {
  %y = tfrt.call @nowhere(%x) : (i32) -> (i32) // expected-error {{'nowhere' does not reference a valid function}}
  tfrt.return %y : i32
}
