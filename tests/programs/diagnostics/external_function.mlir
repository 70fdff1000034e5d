// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func private @f(i32) -> i32 // expected-error {{external functions are not allowed}}
