"""Every key of a Ray Serve config file, level by level, as of Ray 2.60.

Serve itself ignores keys that it does not know, so that a typing error silently keeps a default. This table is what
such keys are compared with; it is kept equal to the installed Serve by a test. Types and bounds are Serve's.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from outrider_cluster.config.code_place import CodeUri
from outrider_runtime.settings import Settings

_NonNegative = Field(default=0.0, ge=0)


class RuntimeEnvKeys(Settings):
    """Ray's ``runtime_env``."""

    working_dir: CodeUri | None = None
    py_modules: list[CodeUri] | None = None
    py_executable: str | None = None
    java_jars: list[str] | None = None
    excludes: list[str] | None = None
    pip: Any = None
    uv: Any = None
    conda: Any = None
    container: dict[str, Any] | None = None
    image_uri: str | None = None
    env_vars: dict[str, str] | None = None
    config: dict[str, Any] | None = None
    worker_process_setup_hook: str | None = None


class ControllerOptions(Settings):
    """``controller_options``."""

    runtime_env: dict[str, Any] | None = None


class LoggingConfig(Settings):
    """``logging_config``."""

    encoding: Literal["TEXT", "JSON"] = "TEXT"
    log_level: int | str = "INFO"
    logs_dir: str | None = None
    enable_access_log: bool = True
    additional_log_standard_attrs: list[str] = Field(default_factory=list)


class TracingConfig(Settings):
    """``tracing_config``."""

    enabled: bool = False
    exporter_import_path: str = ""
    sampling_ratio: float = Field(default=0.01, ge=0, le=1)


class HttpOptions(Settings):
    """``http_options``: Serve's own HTTP proxy."""

    host: str = "0.0.0.0"
    port: int = Field(default=8000, ge=0, le=65535)
    root_path: str = ""
    request_timeout_s: float | None = None
    keep_alive_timeout_s: int = 90
    ssl_keyfile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile_password: str | None = None
    ssl_ca_certs: str | None = None


class GrpcOptions(Settings):
    """``grpc_options``: Serve's own gRPC proxy; it runs only if `grpc_servicer_functions` are given."""

    port: int = Field(default=9000, ge=0, le=65535)
    grpc_servicer_functions: list[str] = Field(default_factory=list)
    request_timeout_s: float | None = None
    enable_reflection: bool = True


class AutoscalingPolicy(Settings):
    """``policy`` of an autoscaling config."""

    policy_function: str = "ray.serve.autoscaling_policy:default_autoscaling_policy"
    policy_kwargs: dict[str, Any] = Field(default_factory=dict)


class AutoscalingConfig(Settings):
    """``autoscaling_config``."""

    min_replicas: int = Field(default=1, ge=0)
    initial_replicas: int | None = Field(default=None, ge=0)
    max_replicas: PositiveInt = 1
    target_ongoing_requests: PositiveFloat | None = 2
    metrics_interval_s: PositiveFloat = 10.0
    look_back_period_s: PositiveFloat = 30.0
    smoothing_factor: PositiveFloat = 1.0
    upscale_smoothing_factor: PositiveFloat | None = None
    downscale_smoothing_factor: PositiveFloat | None = None
    upscaling_factor: PositiveFloat | None = None
    downscaling_factor: PositiveFloat | None = None
    downscale_delay_s: float = Field(default=600.0, ge=0)
    downscale_to_zero_delay_s: float | None = Field(default=None, ge=0)
    upscale_delay_s: float = Field(default=30.0, ge=0)
    aggregation_function: Literal["mean", "max", "min"] = "mean"
    policy: AutoscalingPolicy = AutoscalingPolicy()


class BackpressureConfig(Settings):
    """``backpressure_config``."""

    status_code: Literal[503, 429] = 503
    retry_after_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class RequestRouterConfig(Settings):
    """``request_router_config``."""

    request_router_class: str = "ray.serve._private.request_router:PowerOfTwoChoicesRequestRouter"
    request_router_kwargs: dict[str, Any] = Field(default_factory=dict)
    request_routing_stats_period_s: PositiveFloat = 10
    request_routing_stats_timeout_s: PositiveFloat = 30
    initial_backoff_s: PositiveFloat = 0.025
    backoff_multiplier: PositiveFloat = 2
    max_backoff_s: PositiveFloat = 0.5


class GangSchedulingConfig(Settings):
    """``gang_scheduling_config``."""

    gang_size: int = Field(ge=1)
    gang_placement_strategy: Literal["PACK", "SPREAD"] = "PACK"
    runtime_failure_policy: Literal["RESTART_GANG", "RESTART_REPLICA"] = "RESTART_GANG"


class DeploymentActorConfig(Settings):
    """An entry of ``deployment_actors``."""

    name: str
    actor_class: str
    init_args: list[Any] = Field(default_factory=list)
    init_kwargs: dict[str, Any] = Field(default_factory=dict)
    actor_options: dict[str, Any] = Field(default_factory=dict)


class RayActorOptions(Settings):
    """``ray_actor_options``."""

    runtime_env: RuntimeEnvKeys = RuntimeEnvKeys()
    num_cpus: float | None = Field(default=None, ge=0)
    num_gpus: float | None = Field(default=None, ge=0)
    memory: float | None = Field(default=None, ge=0)
    resources: dict[str, float] = Field(default_factory=dict)
    accelerator_type: str | None = None
    label_selector: dict[str, str] | None = None
    fallback_strategy: list[dict[str, Any]] | None = None


class Deployment(Settings):
    """An entry of ``deployments``: overrides what the application says of one deployment."""

    name: str
    num_replicas: PositiveInt | Literal["auto"] | None = None
    max_ongoing_requests: PositiveInt = 5
    max_queued_requests: int = Field(default=-1, ge=-1)
    backpressure_config: BackpressureConfig = BackpressureConfig()
    user_config: dict[str, Any] | None = None
    autoscaling_config: AutoscalingConfig | None = None
    graceful_shutdown_wait_loop_s: float = _NonNegative
    graceful_shutdown_timeout_s: float = _NonNegative
    health_check_period_s: PositiveFloat = 10
    health_check_timeout_s: PositiveFloat = 30
    ray_actor_options: RayActorOptions = RayActorOptions()
    placement_group_bundles: list[dict[str, float]] = Field(default_factory=list)
    placement_group_strategy: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = "PACK"
    placement_group_bundle_label_selector: list[dict[str, str]] = Field(default_factory=list)
    max_replicas_per_node: int | None = Field(default=None, ge=1, le=100)
    logging_config: LoggingConfig = LoggingConfig()
    request_router_config: RequestRouterConfig = RequestRouterConfig()
    gang_scheduling_config: GangSchedulingConfig | None = None
    deployment_actors: list[DeploymentActorConfig] | None = None
    rolling_update_percentage: float = Field(default=0.2, gt=0, le=1)
    max_surge_percent: int = Field(default=0, ge=0, le=100)


class Application(Settings):
    """An entry of ``applications``. Serve refuses its `host` and `port` in files with several applications."""

    name: str = Field(default="default", min_length=1)
    route_prefix: str | None = Field(default="/", pattern="^/")
    import_path: str = Field(pattern=r"^[^:]+[:.][^:]+$")
    runtime_env: RuntimeEnvKeys = RuntimeEnvKeys()
    deployments: list[Deployment] = Field(default_factory=list)
    autoscaling_policy: dict[str, Any] | None = None
    args: Any = None
    logging_config: LoggingConfig | None = None
    external_scaler_enabled: bool = False


class ServeFile(Settings):
    """A whole file for `ray serve deploy`."""

    proxy_location: Literal["Disabled", "HeadOnly", "EveryNode"] = "EveryNode"
    http_options: HttpOptions = HttpOptions()
    grpc_options: GrpcOptions = GrpcOptions()
    controller_options: ControllerOptions | None = None
    logging_config: LoggingConfig | None = None
    tracing_config: TracingConfig | None = None
    applications: list[Application]
    target_capacity: float | None = Field(default=None, ge=0, le=100)
