// RUN: tfrt_translate -mlir-to-bef -verify-diagnostics
func.func @f() { // expected-error {{all functions need to have a tfrt.return}}
  %c0 = tfrt.new.chain
}
