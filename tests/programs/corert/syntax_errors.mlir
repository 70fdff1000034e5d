// RUN: tfrt_opt -split-input-file -verify-diagnostics

func.func @no_pairs(%h: !corert.ophandler) {
  // expected-error @+1 {{'corert.executeop' op each op_attr should be a key-value pair, where the key is a string}}
  "corert.executeop"(%h) {op_attrs = [["a"]], op_func_attrs = [], op_name = "tf.A"} : (!corert.ophandler) -> ()
  tfrt.return
}

// -----

func.func @no_string(%h: !corert.ophandler) {
  // expected-error @+1 {{'corert.executeop' op each op_attr should be a key-value pair, where the key is a string}}
  "corert.executeop"(%h) {op_attrs = [[1 : i32, 2 : i32]], op_func_attrs = [], op_name = "tf.A"} : (!corert.ophandler) -> ()
  tfrt.return
}

// -----

func.func @no_chain(%h: !corert.ophandler) {
  // expected-error @+1 {{'corert.executeop.seq' takes 2 values here, 1 are given}}
  %c = corert.executeop.seq(%h) "tf.A"()
  tfrt.return
}

// -----

func.func @no_name(%h: !corert.ophandler) {
  // expected-error @+1 {{expected the name of an op}}
  corert.executeop(%h) tf.A()
  tfrt.return
}

// -----

// expected-note @+1 {{prior use here}}
func.func @wrong_type(%h: !tfrt.chain) {
  // expected-error @+1 {{expects different type than prior uses}}
  corert.executeop(%h) "tf.A"()
  tfrt.return
}
